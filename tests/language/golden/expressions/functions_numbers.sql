SELECT ABS(flight), ROUND(price, 1), ROUND(delay), FLOOR(price), CEILING(delay), SQRT(flight), POW(delay, 2), MOD(distance, 7), SIGN(delay) FROM flights
