SELECT * FROM db.flights
