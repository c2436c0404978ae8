SELECT flight + INTERVAL '1' MONTH FROM flights
