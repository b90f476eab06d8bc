{{/* What the operator may do with the objects that represent gangs, by their scheduler. */}}
{{- define "shoal.gangRules" -}}
{{- if eq $.Values.gangScheduler "shoal" }}
- apiGroups:
  - scheduling.volcano.sh
  resources:
  - podgroups
  verbs:
  - create
  - delete
  - get
  - patch
  - list
  - watch
{{- end }}
{{- if eq $.Values.gangScheduler "volcano" }}
- apiGroups:
  - scheduling.volcano.sh
  resources:
  - podgroups
  verbs:
  - create
  - delete
  - get
  - patch
  - list
  - watch
{{- end }}
{{- if eq $.Values.gangScheduler "coscheduling" }}
- apiGroups:
  - scheduling.x-k8s.io
  resources:
  - podgroups
  verbs:
  - create
  - delete
  - get
  - patch
  - list
  - watch
{{- end }}
{{- if eq $.Values.gangScheduler "kueue" }}
- apiGroups:
  - kueue.x-k8s.io
  resources:
  - workloads
  verbs:
  - create
  - delete
  - get
  - patch
  - list
  - watch
- apiGroups:
  - kueue.x-k8s.io
  resources:
  - workloads/status
  verbs:
  - patch
{{- end }}
{{- if eq $.Values.gangScheduler "native" }}
- apiGroups:
  - scheduling.k8s.io
  resources:
  - podgroups
  verbs:
  - create
  - delete
  - get
  - patch
  - list
  - watch
{{- end }}
{{- end }}
