{{- define "reprise.name" -}}
{{ .Release.Name | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "reprise.labels" -}}
app.kubernetes.io/name: reprise
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "reprise.metadataLabels" -}}
{{ include "reprise.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "reprise.account" -}}
{{ default (include "reprise.name" .) .Values.serviceAccount.name }}
{{- end }}

{{- /* Node selector and tolerations of a cloud's spot nodes: {label: value}, each also tolerated as a taint. */ -}}
{{- define "reprise.spot" -}}
{{- if eq . "gke" }}cloud.google.com/gke-spot: "true"
{{- else if eq . "eks" }}eks.amazonaws.com/capacityType: SPOT
{{- else if eq . "karpenter" }}karpenter.sh/capacity-type: spot
{{- else if eq . "aks" }}kubernetes.azure.com/scalesetpriority: spot
{{- end }}
{{- end }}

{{- /*
The Deployment of one kind of worker. Takes root (the chart's objects), component, suffix (of names), roles, build (its id, or ""),
tag, flags (a list), worker (its values) and grace (seconds).
*/ -}}
{{- define "reprise.deployment" -}}
{{- $v := .root.Values }}
{{- $tag := default .root.Chart.AppVersion (default $v.image.tag .tag) }}
{{- $keys := $v.temporal.codecSecret }}
{{- $preStop := default 0 .worker.preStopSeconds -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "reprise.name" .root }}-{{ .suffix }}
  labels:
    {{- include "reprise.metadataLabels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
spec:
  replicas: {{ .worker.replicas }}
  selector:
    matchLabels:
      {{- include "reprise.labels" .root | nindent 6 }}
      reprise/worker: {{ .suffix }}
  # A device worker's successor needs its card, so the old one ends first.
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: {{ if eq .component "device" }}0{{ else }}1{{ end }}, maxUnavailable: 1}
  template:
    metadata:
      labels:
        {{- include "reprise.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .component }}
        reprise/worker: {{ .suffix }}
        {{- with .build }}
        reprise/build: {{ . | quote }}
        {{- end }}
        {{- with $v.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $v.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "reprise.account" .root }}
      automountServiceAccountToken: false
      # --grace, what hooks take, and time to give the device back.
      terminationGracePeriodSeconds: {{ add .grace $preStop 15 }}
      {{- with $v.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile: {type: RuntimeDefault}
      {{- $spot := "" }}
      {{- if .worker.spot }}{{ $spot = include "reprise.spot" .worker.spot }}{{ end }}
      {{- if or $spot .worker.nodeSelector }}
      nodeSelector:
        {{- with $spot }}
        {{- . | nindent 8 }}
        {{- end }}
        {{- with .worker.nodeSelector }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- if or $spot .worker.tolerations }}
      tolerations:
        {{- with $spot }}
        {{- range $key, $value := fromYaml . }}
        - {key: {{ $key | quote }}, operator: Equal, value: {{ $value | quote }}, effect: NoSchedule}
        {{- end }}
        {{- end }}
        {{- with .worker.tolerations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- end }}
      {{- with .worker.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $keys }}
      initContainers:
        # Keys must be their reader's alone (0400). A mounted Secret is readable by the pod's group, so a copy in memory is made.
        - name: keys
          image: "{{ $v.image.repository }}:{{ $tag }}"
          imagePullPolicy: {{ $v.image.pullPolicy }}
          command: [/bin/sh, -c, "umask 077 && cp /secret/codec.keys /keys/codec.keys && chmod 0400 /keys/codec.keys"]
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          resources:
            requests: {cpu: 10m, memory: 16Mi}
            limits: {memory: 64Mi}
          volumeMounts:
            - {name: codec, mountPath: /secret, readOnly: true}
            - {name: keys, mountPath: /keys}
      {{- end }}
      containers:
        - name: {{ .component }}
          image: "{{ $v.image.repository }}:{{ $tag }}"
          imagePullPolicy: {{ $v.image.pullPolicy }}
          args:
            - worker
            - --roles={{ .roles }}
            - --metrics-listen=0.0.0.0:9464
            - --grace={{ .grace }}s
            - --lease-heartbeat={{ $v.leaseHeartbeat }}
            - --session-heartbeat={{ $v.sessionHeartbeat }}
            - --log-format={{ $v.logFormat }}
            - --notices={{ $v.notices }}
            {{- with .build }}
            - --deployment={{ $v.versioning.deployment }}
            - --build={{ . }}
            {{- end }}
            {{- range .flags }}
            - {{ . | quote }}
            {{- end }}
            {{- range .worker.extraArgs }}
            - {{ . | quote }}
            {{- end }}
          env:
            - {name: TEMPORAL_ADDRESS, value: {{ required "temporal.address: host:port of the Temporal frontend" $v.temporal.address | quote }}}
            - {name: TEMPORAL_NAMESPACE, value: {{ $v.temporal.namespace | quote }}}
            {{- if $v.temporal.tls.secret }}
            - {name: TEMPORAL_TLS_CLIENT_CERT_PATH, value: /etc/reprise/tls/tls.crt}
            - {name: TEMPORAL_TLS_CLIENT_KEY_PATH, value: /etc/reprise/tls/tls.key}
            - {name: TEMPORAL_TLS_SERVER_CA_CERT_PATH, value: /etc/reprise/tls/ca.crt}
            {{- end }}
            {{- with $v.temporal.tls.serverName }}
            - {name: TEMPORAL_TLS_SERVER_NAME, value: {{ . | quote }}}
            {{- end }}
            {{- with $v.temporal.apiKeySecret }}
            - {name: REPRISE_API_KEY_FILE, value: /etc/reprise/api-key/api-key}
            {{- end }}
            {{- with $keys }}
            - {name: REPRISE_CODEC_KEY_FILE, value: /etc/reprise/keys/codec.keys}
            {{- end }}
            - {name: AWS_REGION, value: {{ $v.s3.region | quote }}}
            - {name: REPRISE_S3_BUCKET, value: {{ required "s3.bucket: the name of the bucket" $v.s3.bucket | quote }}}
            {{- with $v.s3.endpoint }}
            - {name: REPRISE_S3_ENDPOINT, value: {{ . | quote }}}
            {{- end }}
            {{- with $v.s3.prefix }}
            - {name: REPRISE_S3_PREFIX, value: {{ . | quote }}}
            {{- end }}
            {{- if $v.s3.pathStyle }}
            - {name: REPRISE_S3_PATH_STYLE, value: "true"}
            {{- end }}
            {{- with .worker.extraEnv }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          {{- with $v.s3.secret }}
          envFrom:
            - secretRef: {name: {{ . | quote }}}
          {{- end }}
          ports:
            - {name: metrics, containerPort: 9464}
          # A worker that is not ready gets well by itself, or ends: only /healthz restarts it. Opening a device takes a while.
          startupProbe:
            httpGet: {path: /healthz, port: metrics}
            periodSeconds: 5
            failureThreshold: 60
          livenessProbe:
            httpGet: {path: /healthz, port: metrics}
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          readinessProbe:
            httpGet: {path: /readyz, port: metrics}
            periodSeconds: 10
            timeoutSeconds: 5
          {{- with .worker.lifecycle }}
          lifecycle:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities: {drop: [ALL]}
          {{- with .worker.resources }}
          resources:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          volumeMounts:
            - {name: cache, mountPath: /var/cache/reprise}
            - {name: tmp, mountPath: /tmp}
            {{- if $v.temporal.tls.secret }}
            - {name: tls, mountPath: /etc/reprise/tls, readOnly: true}
            {{- end }}
            {{- if $v.temporal.apiKeySecret }}
            - {name: api-key, mountPath: /etc/reprise/api-key, readOnly: true}
            {{- end }}
            {{- if $keys }}
            - {name: keys, mountPath: /etc/reprise/keys, readOnly: true}
            {{- end }}
      volumes:
        {{- if .worker.cacheClaim }}
        - {name: cache, persistentVolumeClaim: {claimName: {{ .worker.cacheClaim | quote }}}}
        {{- else }}
        - {name: cache, emptyDir: {}}
        {{- end }}
        - {name: tmp, emptyDir: {}}
        {{- with $v.temporal.tls.secret }}
        - {name: tls, secret: {secretName: {{ . | quote }}}}
        {{- end }}
        {{- with $v.temporal.apiKeySecret }}
        - {name: api-key, secret: {secretName: {{ . | quote }}}}
        {{- end }}
        {{- with $keys }}
        - {name: codec, secret: {secretName: {{ . | quote }}}}
        - {name: keys, emptyDir: {medium: Memory}}
        {{- end }}
{{- end }}
