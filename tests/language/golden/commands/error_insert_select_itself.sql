INSERT INTO flights SELECT * FROM flights
