DESC carriers
