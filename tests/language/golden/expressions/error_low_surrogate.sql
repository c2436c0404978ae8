SELECT E'\ude00\ud83d' FROM flights
