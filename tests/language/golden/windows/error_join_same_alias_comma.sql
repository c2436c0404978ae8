SELECT 1 FROM flights a, weather a_2, TUMBLE(weather, 1 HOUR) a
