"""Annotation objects for a series: RTSTRUCT and SR by pydicom, SEG by highdicom."""

import highdicom
import numpy as np
import pydicom
from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.sr.codedict import codes
from pydicom.uid import ComprehensiveSRStorage, ExplicitVRLittleEndian, RTStructureSetStorage, generate_uid
from pynetdicom import AE

KEEP = object()


def datasets(files):
    return [pydicom.dcmread(path) for path in files]


def new_object(image, sop_class, modality, series=None, sop=None):
    ds = Dataset()
    ds.SpecificCharacterSet = "ISO_IR 192"
    ds.SOPClassUID, ds.SOPInstanceUID = sop_class, sop or generate_uid()
    ds.PatientID, ds.PatientName = image.PatientID, image.PatientName
    ds.StudyInstanceUID, ds.SeriesInstanceUID = image.StudyInstanceUID, series or generate_uid()
    ds.Modality = modality
    ds.file_meta = FileMetaDataset()
    ds.file_meta.MediaStorageSOPClassUID = ds.SOPClassUID
    ds.file_meta.MediaStorageSOPInstanceUID = ds.SOPInstanceUID
    ds.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    return ds


def square(image, name_of, half=6.0):
    """Returns a closed contour around the middle of an image."""
    row, column = np.array(image.ImageOrientationPatient, float).reshape(2, 3)
    dy, dx = map(float, image.PixelSpacing)
    middle = (np.array(image.ImagePositionPatient, float) + row * dx * (image.Columns // 2)
              + column * dy * (image.Rows // 2))
    contour, of = Dataset(), Dataset()
    points = [middle + half * (a * row * dx + b * column * dy) / 1.5 for a, b in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
    of.ReferencedSOPClassUID, of.ReferencedSOPInstanceUID = image.SOPClassUID, name_of or image.SOPInstanceUID
    contour.ContourImageSequence = [of]
    contour.ContourGeometricType, contour.NumberOfContourPoints = "CLOSED_PLANAR", len(points)
    contour.ContourData = [f"{value:.3f}" for point in points for value in point]
    return contour


def structure_set(files, label="Plan", roi="GTV", of_series=KEEP, made="20260131", **which):
    """Returns an RTSTRUCT with one region, a square on each image. With of_series None it refers to no series."""
    images = datasets(files)
    ds = new_object(images[0], RTStructureSetStorage, "RTSTRUCT", **which)
    ds.StructureSetLabel, ds.StructureSetDate, ds.StructureSetTime = label, made, "120000"
    series, study, frame = Dataset(), Dataset(), Dataset()
    series.SeriesInstanceUID = images[0].SeriesInstanceUID if of_series is KEEP else of_series
    study.ReferencedSOPClassUID, study.ReferencedSOPInstanceUID = "1.2.840.10008.3.1.2.3.1", images[0].StudyInstanceUID
    study.RTReferencedSeriesSequence = [series] if of_series else []
    frame.FrameOfReferenceUID, frame.RTReferencedStudySequence = images[0].FrameOfReferenceUID, [study]
    ds.ReferencedFrameOfReferenceSequence = [frame]
    region, drawn, observation = Dataset(), Dataset(), Dataset()
    region.ROINumber, region.ROIName, region.ROIGenerationAlgorithm = 1, roi, "MANUAL"
    region.ReferencedFrameOfReferenceUID = frame.FrameOfReferenceUID
    drawn.ReferencedROINumber = observation.ReferencedROINumber = observation.ObservationNumber = 1
    drawn.ContourSequence = [square(image, None) for image in images]
    observation.RTROIInterpretedType, observation.ROIInterpreter = "GTV", ""
    ds.StructureSetROISequence, ds.ROIContourSequence = [region], [drawn]
    ds.RTROIObservationsSequence = [observation]
    return ds


def segmentation(files, label="Liver", made="20260131", kind="BINARY", mask=None, **which):
    """Returns a SEG of mask[z, y, x], or of a block in the middle of the images. series and sop are its UIDs."""
    images = sorted(datasets(files), key=lambda image: float(image.ImagePositionPatient[2]))
    if mask is None:
        mask = np.zeros((len(images), images[0].Rows, images[0].Columns), np.uint8)
        mask[:, images[0].Rows // 4:-(images[0].Rows // 4), images[0].Columns // 4:-(images[0].Columns // 4)] = 1
    segment = highdicom.seg.SegmentDescription(
        1, label, codes.SCT.Organ, codes.SCT.Liver, highdicom.seg.SegmentAlgorithmTypeValues.MANUAL)
    ds = highdicom.seg.Segmentation(
        images, mask if kind != "FRACTIONAL" else mask.astype(float), highdicom.seg.SegmentationTypeValues[kind],
        [segment], which.get("series", generate_uid()), 1, which.get("sop", generate_uid()), 1, "Hand", "Paper", "1", "1")
    ds.ContentDate, ds.ContentTime = made, "120000"
    return ds


def report(files, predecessor=None):
    """Returns an SR that refers to the images."""
    image = pydicom.dcmread(files[0])
    ds = new_object(image, ComprehensiveSRStorage, "SR")

    def evidence(series, sop_class, sop):
        study, of, ref = Dataset(), Dataset(), Dataset()
        ref.ReferencedSOPClassUID, ref.ReferencedSOPInstanceUID = sop_class, sop
        of.SeriesInstanceUID, of.ReferencedSOPSequence = series, [ref]
        study.StudyInstanceUID, study.ReferencedSeriesSequence = image.StudyInstanceUID, [of]
        return [study]

    ds.CurrentRequestedProcedureEvidenceSequence = evidence(image.SeriesInstanceUID, image.SOPClassUID,
                                                            image.SOPInstanceUID)
    if predecessor:
        ds.PredecessorDocumentsSequence = evidence(predecessor.SeriesInstanceUID, predecessor.SOPClassUID,
                                                   predecessor.SOPInstanceUID)
    return ds


def save(ds, path):
    ds.save_as(path, enforce_file_format=True)
    return path


def send(port, *objects, calling="PYNETDICOM"):
    """Sends objects by C-STORE. Returns the statuses of the responses."""
    ae = AE(calling)
    for uid in {ds.SOPClassUID for ds in objects}:
        ae.add_requested_context(uid, ExplicitVRLittleEndian)
    association = ae.associate("127.0.0.1", port, ae_title="NOCTULE")
    assert association.is_established
    try:
        return [association.send_c_store(ds).Status for ds in objects]
    finally:
        association.release()
