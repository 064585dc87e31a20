package artifact

import (
	"path/filepath"
	"strings"
)

// mimeOf is the media type that a file's name stands for. The table is ours,
// so that an artifact has the same type on every host.
func mimeOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv":
		return "text/csv"
	case ".tsv":
		return "text/tab-separated-values"
	case ".txt", ".log", ".py", ".sh", ".toml", ".ini":
		return "text/plain"
	case ".md":
		return "text/markdown"
	case ".htm", ".html":
		return "text/html"
	case ".js", ".mjs":
		return "text/javascript"
	case ".json":
		return "application/json"
	case ".jsonl", ".ndjson":
		return "application/x-ndjson"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".xml":
		return "application/xml"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".gif":
		return "image/gif"
	case ".webp":
		return "image/webp"
	case ".svg":
		return "image/svg+xml"
	case ".pdf":
		return "application/pdf"
	case ".zip":
		return "application/zip"
	case ".gz", ".tgz":
		return "application/gzip"
	case ".tar":
		return "application/x-tar"
	case ".xlsx":
		return "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	case ".docx":
		return "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	case ".parquet":
		return "application/vnd.apache.parquet"
	case ".sqlite", ".db":
		return "application/vnd.sqlite3"
	case ".wav":
		return "audio/wav"
	case ".mp3":
		return "audio/mpeg"
	case ".mp4":
		return "video/mp4"
	}
	return "application/octet-stream"
}
