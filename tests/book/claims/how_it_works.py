"""What the page of the package's insides says of its code: true of the names of its page."""

# The operator that is worked by hand is the row that takes longest, and it waits for memory.
assert name in {each.name for each in rows}
assert put_in("roofline_time")[1] == put_in("memory_time")[1]

# The call that is printed is the one that is followed.
printed = {}
exec(
    re.search(r"```python\n(.*?)print\(", Path("how_it_works.qmd").read_text("utf-8"), re.S)[1],
    printed,
)
assert str(printed["profile"]) == str(profile)

# The figure's alternative text names every box, in order.
said = Path("how_it_works.qmd").read_text("utf-8")
drawn = re.findall(r"\w+/[\w/]+\.(?:py|lua)", re.search(r'fig-alt: "(Ten boxes .*)"', said)[1])
assert drawn == [path for _, path, _, _ in CALL]

# Seven floors, and the five layers among them from the fifth down to the first.
assert [NUMBERED[band[0]] for band in shown if len(band) == 1] == [5, 4, 3, 2, 1]
assert len(shown) == 7

ROOMS = {room for band in shown for room in band}
# The rooms that the core works without are those that the test of the walls names.
walls = Path("tests/test_walls.py").read_text("utf-8")
pattern = "".join(re.findall(r'r"(.*)"', walls.split("OUTER = re.compile(")[1].split("\n)")[0]))
assert {each for each in ROOMS if re.match(pattern, f"mlsim.{each}")} == OUTER & ROOMS
