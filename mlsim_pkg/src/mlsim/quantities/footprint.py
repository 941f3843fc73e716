"""Energy, carbon and water."""

ENTRIES: tuple[tuple[str, str, str, str], ...] = (
    # What a device draws.
    (
        "compute_utilisation",
        r"u_F",
        "1",
        "Work done, per work that the peak rate allows in the same time.",
    ),
    (
        "memory_utilisation",
        r"u_D",
        "1",
        "Bytes moved, per bytes that the memory bandwidth allows in the same time.",
    ),
    (
        "compute_power_weight",
        r"w_F",
        "1",
        "How much of the way to full power the full use of the arithmetic alone goes.",
    ),
    (
        "memory_power_weight",
        r"w_D",
        "1",
        "How much of the way to full power the full use of the memory alone goes.",
    ),
    ("power_load", r"\ell_P", "1", "Use of arithmetic and memory together, 1 at full power."),
    ("power_share", r"s_P", "1", "Part of the way from idle power to full power."),
    ("idle_power", r"P_\mathrm{idle}", "W", "Power of a device that does nothing."),
    ("max_power", r"P_\mathrm{max}", "W", "Most that a device draws for long."),
    ("device_power", r"P_\mathrm{dev}", "W", "Power of a device on the average of a load."),
    # Energy, from the device outwards.
    ("working_time", r"T_\ell", "s", "Time for which devices are held for a load."),
    ("device_energy", r"E_\mathrm{dev}", "J", "Energy of the devices of a load."),
    ("host_idle_power", r"P_{h0}", "W", "What a host draws for each device while all is idle."),
    ("host_max_power", r"P_{h1}", "W", "Most that a host draws for each device."),
    ("host_power", r"P_h", "W", "What a host draws for each device under a load."),
    ("host_energy", r"E_h", "J", "Energy of the hosts of a load's devices."),
    ("network_power", r"P_n", "W", "What switches outside the host draw for each device."),
    ("network_energy", r"E_n", "J", "Energy of the switches that join a load's hosts."),
    ("it_energy", r"E_\mathrm{IT}", "J", "Energy of all machines: devices, hosts and network."),
    (
        "pue",
        r"\mathrm{PUE}",
        "1",
        "Energy of a data centre, per energy of its machines (power usage effectiveness).",
    ),
    ("facility_energy", r"E_\mathrm{fac}", "J", "Energy of machines with cooling and losses."),
    # Carbon.
    (
        "average_carbon_intensity",
        r"\bar\gamma",
        "kg_CO2e/J",
        "What a unit of electricity emits, on a year's average.",
    ),
    ("hour_factor", r"f_h", "1", "Intensity of the hours at which a load runs, per average."),
    (
        "contract_factor",
        r"f_c",
        "1",
        "Emissions counted by an operator's contracts, per emissions counted by its grids.",
    ),
    ("carbon_intensity", r"\gamma", "kg_CO2e/J", "What a unit of electricity emits."),
    ("operational_carbon", r"C_\mathrm{op}", "kg_CO2e", "Emissions of the electricity used."),
    (
        "embodied_per_device",
        r"C_1",
        "kg_CO2e",
        "Emissions of making one device, or its share of a server.",
    ),
    ("device_lifetime", r"T_\dagger", "s", "Time from the first day of a device to its last."),
    ("lifetime_use", r"s_\dagger", "1", "Part of that time in which the device is used."),
    (
        "embodied_carbon",
        r"C_\mathrm{emb}",
        "kg_CO2e",
        "Share of a load in the emissions of making its devices.",
    ),
    ("total_carbon", r"C_\Sigma", "kg_CO2e", "Emissions of electricity and of making devices."),
    # Water.
    (
        "wue",
        r"\mathrm{WUE}",
        "L/J",
        "Water used on site, per energy of the machines (water usage effectiveness).",
    ),
    (
        "water_intensity",
        r"\omega",
        "L/J",
        "Water that power stations consume, per electricity used.",
    ),
    ("site_water", r"W_\mathrm{site}", "L", "Water used in the data centre."),
    ("source_water", r"W_\mathrm{src}", "L", "Water consumed where the electricity is made."),
    ("total_water", r"W_\Sigma", "L", "Water of the data centre and of the power stations."),
    # For each token.
    ("load_tokens", r"n_\ell", "token", "Tokens that a load makes, or reads in training."),
    ("energy_per_token", r"\epsilon_t", "J/token", "Energy of the data centre for each token."),
    (
        "device_energy_per_token",
        r"\epsilon_\mathrm{dev}",
        "J/token",
        "Energy of the devices alone for each token.",
    ),
    ("carbon_per_token", r"\chi_t", "kg_CO2e/token", "Emissions for each token."),
    ("water_per_token", r"\omega_t", "L/token", "Water for each token."),
)
