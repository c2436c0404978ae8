SELECT 1 AS one FROM "Odd Names" a LEFT JOIN "Odd Names" b ON a."a b" = b.now AND a."Ünïcode" < b."Ünïcode"
