SELECT 1 FROM flights f, GENERATE_SERIES(1, f.flight) g
