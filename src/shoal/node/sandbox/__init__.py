"""Where pods run: one shim process per pod, its addresses and names, its processes and their logs.

A shim is to a pod what a container shim is elsewhere. It is not a child that dies with the agent: it continues to hold
the pod's processes, write their logs and record how they ended, and an agent that starts later finds it by its socket.

`interface` is the agent's interface; `sandbox_manager.SandboxManager` implements it on a real machine. Which module
runs where:

    agent            sandbox_manager, shim_client, exec_handle,          sends requests
                     network_client, zygote_client
      └ zygote       zygote, feature_probe                               forks
          ├ shim     shim, process, exec_sessions, child_exec, ...       one per pod, outlives all above
          └ network  network_process, service_proxy, egress_inside       one per cluster: bridge, Services, proxy
              └ egress   egress_outside                                  its side in the outer network

Zygote and shims import only what they use and nothing heavy (see `zygote`).
"""
