SELECT carrier FORM flights
