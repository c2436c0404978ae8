SELECT dest INTO late FROM flights
