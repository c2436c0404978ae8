SELECT MAKE_DATE(flight, 2, 29) AS a, MAKE_TIMESTAMP(2024, 1, 31, 12, 30, delay) AS b, LAST_DAY(ts) AS c, DAYNAME(day) AS d FROM flights
