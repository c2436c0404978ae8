SELECT ts - INTERVAL '1 year 2 months 3 hours' AS t, ADD_MONTHS(day, 6) AS later FROM flights WHERE day + INTERVAL '1' QUARTER > ts
