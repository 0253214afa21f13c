"""COCO's classes of objects and their ids, which have gaps (Lin et al. 2014, arXiv:1405.0312)."""

NAMES = """
person, bicycle, car, motorcycle, airplane, bus, train, truck, boat, traffic light, fire hydrant, stop sign,
parking meter, bench, bird, cat, dog, horse, sheep, cow, elephant, bear, zebra, giraffe, backpack, umbrella,
handbag, tie, suitcase, frisbee, skis, snowboard, sports ball, kite, baseball bat, baseball glove, skateboard,
surfboard, tennis racket, bottle, wine glass, cup, fork, knife, spoon, bowl, banana, apple, sandwich, orange,
broccoli, carrot, hot dog, pizza, donut, cake, chair, couch, potted plant, bed, dining table, toilet, tv,
laptop, mouse, remote, keyboard, cell phone, microwave, oven, toaster, sink, refrigerator, book, clock, vase,
scissors, teddy bear, hair drier, toothbrush
"""
UNUSED = (12, 26, 29, 30, 45, 66, 68, 69, 71, 83)  # ids from 1 to 90 without a class
IDS = [number for number in range(1, 91) if number not in UNUSED]
COCO = dict(zip(IDS, (name.strip() for name in NAMES.split(",")), strict=True))  # from id to name
