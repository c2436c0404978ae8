SELECT * FROM store1 WITH PREFERENCE SUMMARY.Estimate.Count(itemno) WITH (weight = 2) EMIT CHANGES INTO found WITH (format = 'diff')
