"""The plan of one environment, and all quota arithmetic. Pure: no clock, network, file or cloud."""
