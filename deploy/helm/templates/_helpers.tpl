{{/* Checks that the schema cannot express with a readable message. */}}
{{- define "kso.check" -}}
{{- if eq .Values.platform "openshift" -}}
{{- fail "platform openshift is not for this chart, whose cluster brings half of it: kubectl apply --server-side -k deploy/openshift" -}}
{{- end -}}
{{- if and .Values.namespace.create (eq .Release.Namespace (include "kso.namespace" .)) -}}
{{- fail (printf "the chart makes namespace %s, so the release must be in another one: helm install … --namespace kube-system. Or make the namespace yourself, labelled pod-security.kubernetes.io/enforce=privileged, and set namespace.create=false" .Release.Namespace) -}}
{{- end -}}
{{- end -}}

{{/* The program's namespace, which also has its revisions; it is fixed. */}}
{{- define "kso.namespace" -}}
kube-scheduler-operator
{{- end -}}

{{/* managed-by is never the operator: objects with its name there were created and are deleted by it. */}}
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

{{/* Node placement and security context of the operator and of the uninstall hook. */}}
{{- define "kso.placement" -}}
priorityClassName: system-cluster-critical
# The operator does not use the cluster's DNS, which may itself wait for a scheduler.
dnsPolicy: Default
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
nodeSelector:
{{- if .Values.nodeSelector }}
  {{- toYaml .Values.nodeSelector | nindent 2 }}
{{- else if eq .Values.platform "rke2" }}
  # On RKE2 the label has a value.
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
  # The taint that RKE2's documentation recommends for server nodes.
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
