class PanopticTally:
    pass
