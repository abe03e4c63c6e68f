"""Patient identifiers in generated images. Each identifying attribute contains the mark, and no log line may contain
it."""

import re

from pydicom.dataset import Dataset
from pydicom.sequence import Sequence

MARK = "Zzyzx"
BORN = "19010203"
SIGNS = re.compile(rf"{MARK}|{BORN}", re.IGNORECASE)

NAMES = ["PatientName", "OtherPatientNames", "PatientBirthName", "PatientMotherBirthName", "ResponsiblePerson",
         "ReferringPhysicianName", "ConsultingPhysicianName", "PhysiciansOfRecord", "PerformingPhysicianName",
         "NameOfPhysiciansReadingStudy", "OperatorsName", "RequestingPhysician", "ScheduledPerformingPhysicianName",
         "PersonName", "VerifyingObserverName", "NamesOfIntendedRecipientsOfResults"]
NUMBERS = ["PatientID", "AccessionNumber", "StudyID", "AdmissionID", "OtherPatientIDs", "IssuerOfPatientID",
           "MedicalRecordLocator", "InsurancePlanIdentification", "ScheduledProcedureStepID", "PerformedProcedureStepID",
           "RequestedProcedureID", "FillerOrderNumberImagingServiceRequest", "PlacerOrderNumberImagingServiceRequest",
           "ServiceEpisodeID", "StationName", "DeviceSerialNumber", "PatientTelephoneNumbers", "ReferringPhysicianTelephoneNumbers"]
TEXTS = ["PatientAddress", "ReferringPhysicianAddress", "InstitutionName", "InstitutionAddress",
         "InstitutionalDepartmentName", "MilitaryRank", "BranchOfService", "CountryOfResidence", "RegionOfResidence",
         "Occupation", "PatientReligiousPreference", "PatientComments", "AdditionalPatientHistory", "MedicalAlerts",
         "Allergies", "ImageComments", "StudyDescription", "SeriesDescription", "ProtocolName", "AdmittingDiagnosesDescription",
         "RequestedProcedureDescription", "PerformedProcedureStepDescription", "ReasonForTheRequestedProcedure",
         "CurrentPatientLocation", "PatientInstitutionResidence", "ClinicalTrialSubjectID", "DerivationDescription",
         "IdentifyingComments", "RequestingService", "ContrastBolusAgent"]


def person(number):
    item = Dataset()
    item.PatientID, item.InstitutionName = f"{MARK}-{number}", f"{MARK} clinic"
    item.PersonAddress = f"{MARK} street"
    return item


def identify(dataset, **changes):
    """Sets all identifying attributes. `changes` override them."""
    for number, keyword in enumerate([*NAMES, *NUMBERS, *TEXTS]):
        text = f"{MARK}^Anna" if keyword in NAMES else f"{MARK}{number}" if keyword in NUMBERS else f"{MARK} text {number}"
        setattr(dataset, keyword, text)
    dataset.PatientBirthDate = BORN
    dataset.OtherPatientIDsSequence = Sequence([person(1)])
    dataset.ReferringPhysicianIdentificationSequence = Sequence([person(2)])
    dataset.RequestAttributesSequence = Sequence([person(3)])
    block = dataset.private_block(0x0011, f"{MARK} PRIVATE", create=True)
    block.add_new(0x01, "LO", f"{MARK} private")
    for keyword, value in changes.items():
        setattr(dataset, keyword, value)
