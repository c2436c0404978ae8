ALTER SUMMARY items1 SET (kind = 'histogram')
