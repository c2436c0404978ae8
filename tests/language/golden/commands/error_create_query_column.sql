CREATE QUERY alerts AS SELECT carier FROM flights
