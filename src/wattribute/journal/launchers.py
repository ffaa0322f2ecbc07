"""Variables by which launchers of parallel jobs tell a process which one it is; :mod:`.ranks` reads them.

Apart, because programs under a profile note them while Python starts: this module imports nothing.
"""

RANK = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID")
SIZE = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS")
LOCAL = ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID")
JOB = ("SLURM_JOB_ID", "OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE", "PMI_JOBID", "PBS_JOBID")
NAMES = (*RANK, *SIZE, *LOCAL, *JOB)
