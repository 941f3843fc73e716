"""What the chapter on sustainability says beyond its numbers: true of the names of its page."""

from math import prod

# The ten places: the energy is the same, and the carbon follows the intensities.
assert len({round(each.facility_energy.si, 3) for each in at.values()}) == 1
assert abs(ratio / spread - 1) < 1e-9
assert (order[0], order[-1]) == ("Sweden", "India")
assert 18 < spread < 22
assert at["Germany"].operational_carbon < at["UnitedStates"].operational_carbon
assert frankfurt.operational_carbon > virginia.operational_carbon
assert germany.device_power > 0.99 * Hardware.Cloud.A100.power.tdp

# The hours of a day.
best_ca = ranked["California"][:best]
assert sorted(best_ca) == list(range(16, 24))
assert during("Germany", best_ca) > during("Germany")
assert idle.si == 61
assert 0 < breaks.si < 0.2 * germany.host_power.si

# The levers: those measured are of one program.
assert titan["bf16"].software == titan["fp8"].software

# What a prompt costs: the time of the roofline is too short, and all batches draw the same.
errors = {
    batch: [
        found[batch].device_energy_per_token / row.published - 1 for found in (predicted, in_time)
    ]
    for batch, row in metered.items()
}
assert all(roofline < 0 for roofline, _ in errors.values())
assert max(abs(timed) for _, timed in errors.values()) < 0.35
assert abs(errors[few][0]) < abs(errors[few][1])
tdp = Hardware.Cloud.H100.power.tdp
assert all(each.device_power > 0.99 * tdp for each in predicted.values())
assert in_time[few].device_power < 0.95 * tdp
assert powers[few].published < 0.75 * tdp
assert dry.source_water > wet.site_water / 3

# Making the machines.
intensities = sorted(each.carbon_intensity for each in Grids)
assert least < intensities[0]
assert abs(most / intensities[0] - 1) < 0.1
near = {each.key for each in Grids if each.carbon_intensity <= intensities[1]}
assert near == {"Iceland", "Norway"}
lifetimes = [each.lifetime.to("yr").magnitude for each in (Embodied.A100, Embodied.H100)]
assert lifetimes == [6, 3]
assert all(india.embodied_carbon < 0.05 * india.total_carbon for _, india in kinds.values())

# Two ways of counting.
assert by_meta.operational_carbon.to("kgCO2e").magnitude < 1000

# Published runs: the terms of a ratio multiply to it.
for name, found in footprints.items():
    whole = emitted[name] / found.operational_carbon
    assert abs(prod(terms[name].values()) / whole - 1) < 1e-6
    assert abs(at_peak[name] * prod(parts[name]) / hours[name] - 1) < 1e-6
    rows = [each for each in published_runs(run=name, metric="emissions") if each.run == name]
    assert "arithmetic" in {each.measured for each in rows}
# The published energy of GPT-3 is rounded, and so are the days behind the hours.
assert abs(prod(gpt3_terms.values()) / gpt3_ratio - 1) < 0.01
