class InstanceTally:
    pass
