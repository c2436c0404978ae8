SELECT * FROM store1 WITH PREFERENCE "items1".Estimate.Count("itemno")
