SELECT '2024-01-01' - ts AS a FROM flights
