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
  image: {{ include "bearer-sidecar.image" . | quote }}
  imagePullPolicy: {{ .Values.image.pullPolicy }}
  envFrom:
    - configMapRef: { name: {{ include "bearer-sidecar.name" . }} }
  {{- with .Values.extraEnv }}
  # Wins over envFrom.
  env: {{- toYaml . | nindent 4 }}
  {{- end }}
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
  {{- with .Values.lifecycle }}
  lifecycle: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.resources }}
  resources: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.securityContext }}
  securityContext: {{- toYaml . | nindent 4 }}
  {{- end }}
  volumeMounts: {{- include "bearer-sidecar.volumeMounts" . | nindent 4 }}
{{- end -}}
