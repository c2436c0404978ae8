SELECT itemno FROM store1 EXCEPT SELECT itemno FROM store2 WITH PREFERENCE SUMMARY.Estimate.Count(itemno)
