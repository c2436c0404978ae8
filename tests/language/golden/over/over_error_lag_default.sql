SELECT LAG(delay, 1, 'none') OVER (ORDER BY ts) FROM flights
