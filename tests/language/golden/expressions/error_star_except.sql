SELECT * EXCEPT (carier) FROM flights
