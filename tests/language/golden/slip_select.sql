SELCT * FROM flights
