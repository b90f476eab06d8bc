"""Where pods live: one keeper process per pod, its addresses and names, its processes and their logs.

A keeper is to a pod what a container shim is elsewhere. It is not a child that dies with the agent: it goes
on holding the pod's processes, writing their logs and noting how they ended, and an agent that starts later
finds it by its socket.

`port` is what the agent asks for; `keepers.Keepers` is it, on a real machine. Who runs where:

    agent            keepers, kept, execution, weaving, zygote_link      asks
      └ zygote       zygote, trial                                       forks
          ├ keeper   keeper, charge, beside, launching, mounting, ...    one per pod, outlives all above
          └ fabric   fabric, services, front                             one per cluster: bridge, Services, proxy
              └ doorway                                                  the fabric's hand in the outer network

Zygote and keepers import only what they use and nothing heavy (see `zygote`).
"""
