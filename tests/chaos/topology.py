"""What a run has to know of its servers. A new topology is a file with a subclass, named in TOPOLOGIES of main.py."""


class Topology:
    """Servers that hold the locks; started inside a network that Hosts made. Each kind also has

    start()         returns once every server answers
    stop()          ends every process; what the servers have written stays for the checker
    url(host)       RLOCK_URL for that host's runs
    operator_url()  RLOCK_URL for an operator whom no fault of the network reaches
    faults()        name -> what does it, given seconds and a Random: None, or what undoes it
    leftovers()     what is wrong with what is stored after the drain: a list of texts
    """

    def __init__(self, hosts, folder):
        self.hosts, self.folder = hosts, folder

    def room(self, _name, pending):
        """Whether one more fault of the servers may begin, beside those that have not ended."""
        return not pending

    def lasts(self, _name, seconds):
        """How long a fault of the servers goes on, where `seconds` were drawn."""
        return seconds

    def excuses(self, _name):
        """Whether a fault of the servers may make rlock late, or fail."""
        return True

    def ledgers(self):
        """For each server the files in which it wrote down all that it did, oldest first."""
        return []
