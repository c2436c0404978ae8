SELECT "a b", "x; DROP", "say ""hi""", "Ünïcode", now, "select" FROM "Odd Names" WHERE "x; DROP" = 'x''; DROP STREAM flights; --'
