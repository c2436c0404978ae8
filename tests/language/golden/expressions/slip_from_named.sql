SELECT dest FORM flights
