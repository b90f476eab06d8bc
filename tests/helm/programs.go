//go:build tools

// Package helm pins helm, so that "go mod tidy" keeps its modules and "go build" can make it.
package helm

import (
	_ "helm.sh/helm/v3/cmd/helm"
)
