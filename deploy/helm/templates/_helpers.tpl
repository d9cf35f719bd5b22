{{/* Checks that the schema cannot express with a readable message. */}}
{{- define "kso.check" -}}
{{- if eq .Values.platform "openshift" -}}
{{- fail "platform openshift is not for this chart, whose cluster brings half of it: kubectl apply --server-side -k deploy/openshift" -}}
{{- end -}}
{{- if and .Values.namespace.create (eq .Release.Namespace (include "kso.namespace" .)) -}}
{{- fail (printf "the chart makes namespace %s, so the release must be in another one: helm install … --namespace kube-system. Or make the namespace yourself, labelled pod-security.kubernetes.io/enforce=%s, and set namespace.create=false" .Release.Namespace (include "kso.podSecurity" .)) -}}
{{- end -}}
{{- include "kso.checkNodes" . -}}
{{- end -}}

{{/* Whether the cluster has a node for the operator, whose Pods, and the uninstall hook, would stay Pending. */}}
{{- define "kso.checkNodes" -}}
{{- $selector := .Values.nodeSelector -}}
{{- if and (not $selector) (include "kso.staticPods" .) -}}
{{- $selector = dict "node-role.kubernetes.io/control-plane" (include "kso.controlPlane" .) -}}
{{- end -}}
{{- if and .Release.IsInstall $selector -}}
{{- $nodes := (lookup "v1" "Node" "" "").items | default list -}}
{{- $suitable := false -}}
{{- range $node := $nodes -}}
{{- $labels := $node.metadata.labels | default dict -}}
{{- $matches := true -}}
{{- range $key, $value := $selector -}}
{{- if not (and (hasKey $labels $key) (eq $value (get $labels $key))) -}}
{{- $matches = false -}}
{{- end -}}
{{- end -}}
{{- if $matches -}}
{{- $suitable = true -}}
{{- end -}}
{{- end -}}
{{- if and $nodes (not $suitable) -}}
{{- $wanted := list -}}
{{- range $key, $value := $selector -}}
{{- $wanted = append $wanted (printf "%s=%q" $key $value) -}}
{{- end -}}
{{- fail (printf "no node has the label %s, so the operator's Pods would stay Pending. On EKS, GKE, AKS, k3s, k0s, Talos and MicroK8s install with --set platform=managed, on RKE2 with --set platform=rke2; if your control-plane nodes have other labels, set nodeSelector" (join ", " $wanted)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The program's namespace, which also has its revisions; it is fixed. */}}
{{- define "kso.namespace" -}}
kube-scheduler-operator
{{- end -}}

{{/* Whether the operator owns the static Pods of the control plane's scheduler; empty: it does not. */}}
{{- define "kso.staticPods" -}}
{{- if ne .Values.platform "managed" }}true{{ end -}}
{{- end -}}

{{/* The value of the label of control-plane nodes, which has one on RKE2. */}}
{{- define "kso.controlPlane" -}}
{{- if eq .Values.platform "rke2" }}true{{ end -}}
{{- end -}}

{{/* The pod-security level of the namespace: installer Pods write the static Pod's manifest. */}}
{{- define "kso.podSecurity" -}}
{{- if include "kso.staticPods" . }}privileged{{ else }}restricted{{ end -}}
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

{{/* The nodes of the operator. */}}
{{- define "kso.nodes" -}}
{{- if .Values.nodeSelector }}
nodeSelector:
  {{- toYaml .Values.nodeSelector | nindent 2 }}
{{- else if include "kso.staticPods" . }}
nodeSelector:
  node-role.kubernetes.io/control-plane: {{ include "kso.controlPlane" . | quote }}
{{- end }}
{{- end -}}

{{/* Tolerations, security context and priority of the operator and of the uninstall hook. */}}
{{- define "kso.placement" -}}
priorityClassName: system-cluster-critical
# The operator does not use the cluster's DNS, which may itself wait for a scheduler.
dnsPolicy: Default
{{- with .Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
tolerations:
{{- if include "kso.staticPods" . }}
  - key: node-role.kubernetes.io/control-plane
    operator: Exists
  - key: node-role.kubernetes.io/master
    operator: Exists
{{- end }}
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
