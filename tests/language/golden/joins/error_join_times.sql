SELECT 1 FROM flights f JOIN "Odd Names" o ON f.flight = o."a b"
