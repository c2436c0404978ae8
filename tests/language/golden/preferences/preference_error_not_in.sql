SELECT * FROM store1 WHERE itemno NOT IN (SELECT itemno FROM store2) WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
