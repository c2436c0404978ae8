SELECT E'a\ud83dx' FROM flights
