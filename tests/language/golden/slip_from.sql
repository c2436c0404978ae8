SELECT * FORM flights
