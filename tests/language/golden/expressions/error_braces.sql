SELECT {'a': 1} FROM flights
