SELECT dest FROM flights WHERE carrier IN ('AA', 'UA', 'AA') AND flight NOT IN (1, 2, NULL) AND distance IN (1.0, 2.5)
