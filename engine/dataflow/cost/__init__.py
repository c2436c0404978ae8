"""What a plan costs per second, by strategy (Golab and Oezsu, section 5.4.1), as pure functions of rates,
sizes and distinct values.

    statistics  what is known of the sources
    flows       what passes each edge: rows a second, rows that are there, how many leave before their time
    structures  how an edge's rows are kept, and what it costs to insert, expire, or take one out early
    estimate    what each operator adds: probes, folds, counts

Costs are given twice: in entries of scanned lists, as the paper has them, and in nanoseconds of the indexes
that are really used (a probe is O(1) and then its matches), whose units are measured on this machine.
"""
