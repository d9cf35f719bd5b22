{{/* What the schema cannot say in words. */}}
{{- define "kso.check" -}}
{{- if eq .Values.platform "openshift" -}}
{{- fail "platform openshift is not for this chart, whose cluster brings half of it: kubectl apply --server-side -k deploy/openshift" -}}
{{- end -}}
{{- if and .Values.namespace.create (eq .Release.Namespace (include "kso.namespace" .)) -}}
{{- fail (printf "the chart makes namespace %s, so the release must be in another one: helm install … --namespace kube-system. Or make the namespace yourself, labelled pod-security.kubernetes.io/enforce=privileged, and set namespace.create=false" .Release.Namespace) -}}
{{- end -}}
{{- end -}}

{{/* Where the program expects itself and keeps its revisions; it can be no other. */}}
{{- define "kso.namespace" -}}
kube-scheduler-operator
{{- end -}}

{{/* managed-by is never the operator: what has its name there it made itself, and deletes. */}}
{{- define "kso.labels" -}}
app.kubernetes.io/name: kube-scheduler-operator
{{ include "kso.common" . }}
{{- end -}}

{{- define "kso.common" -}}
app.kubernetes.io/part-of: kube-scheduler-operator
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "kso.image" -}}
{{- with .Values.image -}}
{{- if .digest }}{{ .repository }}@{{ .digest }}{{ else }}{{ .repository }}:{{ .tag }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* On which nodes, and as whom: the operator and the way out. */}}
{{- define "kso.placement" -}}
priorityClassName: system-cluster-critical
# It looks nothing up in the cluster's DNS, which may be waiting for a scheduler.
dnsPolicy: Default
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
nodeSelector:
{{- if .Values.nodeSelector }}
  {{- toYaml .Values.nodeSelector | nindent 2 }}
{{- else if eq .Values.platform "rke2" }}
  # RKE2 gives the label a value.
  node-role.kubernetes.io/control-plane: "true"
{{- else }}
  node-role.kubernetes.io/control-plane: ""
{{- end }}
tolerations:
  - key: node-role.kubernetes.io/control-plane
    operator: Exists
  - key: node-role.kubernetes.io/master
    operator: Exists
  - key: node.kubernetes.io/not-ready
    operator: Exists
    effect: NoExecute
    tolerationSeconds: 120
  - key: node.kubernetes.io/unreachable
    operator: Exists
    effect: NoExecute
    tolerationSeconds: 120
{{- if eq .Values.platform "rke2" }}
  # With which RKE2's manuals keep workloads off its servers.
  - key: CriticalAddonsOnly
    operator: Exists
{{- end }}
{{- with .Values.tolerations }}
  {{- toYaml . | nindent 2 }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- end -}}

{{- define "kso.confinement" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}
