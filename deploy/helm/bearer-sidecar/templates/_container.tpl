{{/*
For the pod template of another chart, of which this one is a dependency:

  initContainers: {{- include "bearer-sidecar.initContainers" (index .Subcharts "bearer-sidecar") | nindent 8 }}
  containers: {{- include "bearer-sidecar.containers" (index .Subcharts "bearer-sidecar") | nindent 8 }}
  volumes: {{- include "bearer-sidecar.volumes" (index .Subcharts "bearer-sidecar") | nindent 8 }}

The mode decides which of the first two has it; the other one is empty.
*/}}
{{- define "bearer-sidecar.initContainers" -}}
{{- if eq .Values.mode "native" -}}
{{ include "bearer-sidecar.container" . }}
  # Makes it a sidecar: it starts before the app and ends after it.
  restartPolicy: Always
{{- end -}}
{{- end -}}

{{- define "bearer-sidecar.containers" -}}
{{- if ne .Values.mode "native" -}}
{{ include "bearer-sidecar.container" . }}
{{- end -}}
{{- end -}}

{{- define "bearer-sidecar.container" -}}
- name: bearer-sidecar
  image: {{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  envFrom:
    - configMapRef: { name: {{ include "bearer-sidecar.name" . }} }
  ports:
    - { name: sidecar-admin, containerPort: 19464 }
    {{- if eq .Values.mode "standalone" }}
    - { name: proxy, containerPort: 18080 }
    {{- end }}
  # Not /startupz, which waits for the first token: an outage of the partner would keep every new pod from starting.
  startupProbe:
    httpGet: { path: /livez, port: sidecar-admin }
    periodSeconds: 1
    timeoutSeconds: 3
    failureThreshold: 60
  livenessProbe:
    httpGet: { path: /livez, port: sidecar-admin }
    periodSeconds: 10
    timeoutSeconds: 3
    failureThreshold: 3
  {{- if or .Values.readinessProbe (eq .Values.mode "standalone") }}
  readinessProbe:
    httpGet: { path: /readyz, port: sidecar-admin }
    periodSeconds: 5
    timeoutSeconds: 3
  {{- end }}
  resources: {{- toYaml .Values.resources | nindent 4 }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 1000
    runAsGroup: 1000
    readOnlyRootFilesystem: true
    allowPrivilegeEscalation: false
    capabilities: { drop: [ALL] }
    seccompProfile: { type: RuntimeDefault }
  volumeMounts:
    {{- if .Values.client.assertion.audience }}
    - { name: bearer-sidecar-assertion, mountPath: /var/run/secrets/bearer-sidecar, readOnly: true }
    {{- else }}
    - { name: bearer-sidecar-client, mountPath: /etc/bearer-sidecar/client, readOnly: true }
    {{- end }}
    - { name: bearer-sidecar-state, mountPath: /var/lib/bearer-sidecar }
    {{- if .Values.fleet.secretName }}
    - { name: bearer-sidecar-redis, mountPath: /etc/bearer-sidecar/redis, readOnly: true }
    {{- end }}
    {{- if eq .Values.mode "standalone" }}
    - { name: bearer-sidecar-callers, mountPath: /etc/bearer-sidecar/callers, readOnly: true }
    {{- end }}
    {{- with .Values.extraVolumeMounts }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end -}}

{{/* The files belong to root and only the sidecar mounts them; a narrower mode needs an fsGroup for the whole pod. */}}
{{- define "bearer-sidecar.volumes" -}}
{{- with .Values.client.assertion }}
{{- if .audience }}
# Works with automountServiceAccountToken: false. The kubelet renews it after 80 % of its time.
- name: bearer-sidecar-assertion
  projected:
    defaultMode: 0444
    sources:
      - serviceAccountToken:
          path: token
          audience: {{ .audience | quote }}
          expirationSeconds: {{ .expirationSeconds }}
{{- else }}
- name: bearer-sidecar-client
  secret: { secretName: {{ $.Values.client.secretName | quote }}, defaultMode: 0444 }
{{- end }}
{{- end }}
- name: bearer-sidecar-state
  emptyDir: { sizeLimit: 1Mi }
{{- if .Values.fleet.secretName }}
- name: bearer-sidecar-redis
  secret: { secretName: {{ .Values.fleet.secretName | quote }}, defaultMode: 0444 }
{{- end }}
{{- if eq .Values.mode "standalone" }}
- name: bearer-sidecar-callers
  secret: { secretName: {{ .Values.standalone.requiredHeader.secretName | quote }}, defaultMode: 0444 }
{{- end }}
{{- with .Values.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
