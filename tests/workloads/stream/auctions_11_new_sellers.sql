SELECT DISTINCT r.id FROM open_auction [NOW] o JOIN registration [RANGE 12 HOURS] r ON r.id = o.seller
