"""What the page of grids and data centers says beyond its numbers: true of the names of its page."""

# All intensities of grids are counted alike; the page compares them.
assert {each.basis for each in grids} == {"life-cycle"}
assert {each.key for each in countries[:3]} == {"Iceland", "Norway", "Sweden"}
assert {each.key for each in countries[-3:]} == {"India", "SouthAfrica", "Kazakhstan"}
assert 25 < grids[-1].carbon_intensity / grids[0].carbon_intensity < 30
names = [each.name for each in grids]
assert names.index("European Union") < len(grids) / 2 < names.index("World")

# Hours of a day.
assert most is Grids.California
assert 17 <= most.hourly.lowest <= 22
assert 9 <= Grids.Germany.hourly.lowest <= 14
assert {each.hourly.clock for each in days} == {"UTC"}

# Buildings: all fleets below the survey's average, which has hardly moved since it fell.
assert all(each.pue < survey.pue for each in fleets)
since = [survey.figure("pue", year).si for year in survey.years("pue")[1:]]
assert max(since) - min(since) < 0.05

# Water.
assert all(each.water_intensity > wettest.wue / 3 for each in wet)
assert {each.key for each in wet[:2]} == {"Ireland", "Taiwan"}
assert {each.key for each in wet[-2:]} == {"NewZealand", "Brazil"}

# Regions of clouds.
silent = sorted({each.provider for each in regions if not each.figures})
assert silent == ["Amazon Web Services", "Microsoft Azure"]
for each in (paris, stockholm):
    assert each.years("carbon_intensity") == each.grid.years("carbon_intensity")

# Contracts.
assert rest[0].key in ("Norway", "Iceland")
assert CloudOperators.Google.pairs == (2013,)
for each in CloudOperators:
    for year in each.pairs:
        assert show(each, f"scope2_market.{year}") < show(each, f"scope2_location.{year}")

# The making of machines.
least_made, *_, most_made = sorted(Embodied, key=lambda each: each.carbon)
assert (least_made, most_made) == (Embodied.A100, Embodied.P5_Server)
assert after[cleanest] / after[dirtiest] > 10
